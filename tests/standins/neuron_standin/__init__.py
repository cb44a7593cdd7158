"""Stand-ins for AWS Neuron's tools, for tests on machines that have none: they
print, store and exit as the AWS Neuron SDK documentation and real logs show the
real ones to do, with their flaws. They compile nothing and touch no device, and
what they make says so. settings.py has the table of what a test can ask for."""
