"""The snavio command line."""
