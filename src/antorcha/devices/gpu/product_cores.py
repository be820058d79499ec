"""stub"""
product_cores = None
