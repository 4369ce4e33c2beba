"""A small client for AWS's JSON protocols, for the calls every message pays for."""
