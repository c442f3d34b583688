"""Files that commands write: new ones only, whole or not at all."""
