"""Tables with columns of several kinds: our models and those of others, predicting and sampling."""
