"""From the nodes that were found to an answer."""
