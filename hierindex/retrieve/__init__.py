"""From a question to the nodes of the levels it is asked at."""
