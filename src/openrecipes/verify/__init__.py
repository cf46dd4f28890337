"""Does the tuned run still train correctly?"""
