from .engine import RayEngine as RayEngine
