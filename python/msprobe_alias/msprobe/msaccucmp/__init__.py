"""Where upstream's package has its program msaccucmp."""
