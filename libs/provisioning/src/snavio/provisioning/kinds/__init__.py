"""One module for each AWS service the platform has resources in: how they are read, made and corrected."""
