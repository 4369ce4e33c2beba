"""aiobotocore behind the ports: credentials, endpoints, and every call that is not hot."""
