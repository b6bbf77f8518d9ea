from .sentences import Excerpt as Excerpt
from .sentences import Sentence as Sentence
