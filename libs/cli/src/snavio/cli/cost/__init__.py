"""What running the platform costs on AWS: calls a command makes, hours that pass, prices."""
