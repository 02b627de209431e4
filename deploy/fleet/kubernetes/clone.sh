#!/bin/sh
# Makes the clones of a new machine. Set the addresses, and put git's keys into the image or a volume.
set -eu
clone() { [ -d "/srv/ralph/src/$1" ] || git clone "$2" "/srv/ralph/src/$1"; }
clone shop https://git.example.com/shop.git
