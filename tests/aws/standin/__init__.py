"""AWS on loopback, as strict as AWS is: a front that verifies signatures, validates
requests against the official service models and breaks things on demand, with moto and
handlers of our own behind it. ../README.md says what it proves and what it cannot."""
