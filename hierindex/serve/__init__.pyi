from .explorer.server import explore as explore
from .http_api import serve as serve
