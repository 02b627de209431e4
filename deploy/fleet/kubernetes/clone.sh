#!/bin/sh
# Clones the repositories on a new machine. Set your own addresses; put git's keys into the image or a volume.
set -eu
clone() { [ -d "/srv/ralph/src/$1" ] || git clone "$2" "/srv/ralph/src/$1"; }
clone shop https://git.example.com/shop.git
