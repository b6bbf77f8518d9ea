"""A tree in the forms of other libraries."""
