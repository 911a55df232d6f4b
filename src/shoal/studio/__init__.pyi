from shoal.studio.app import serve as serve
