"""`accord serve`: an HTTP server with a page, for one trained model."""
