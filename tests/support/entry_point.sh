#!/usr/bin/env bash
# The entry point of an image for training, of AWS and of Neuron: what it is given is read by
# a shell once more, without the quotes that held it together.
if [[ "$1" = train ]]; then
	train
else
	# shellcheck disable=SC2294 # so they are
	eval "$@"
fi
