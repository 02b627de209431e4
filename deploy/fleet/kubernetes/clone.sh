#!/bin/sh
# Gives a machine that is new its clones. The addresses are yours to set, as are the keys of git in the image or a volume.
set -eu
clone() { [ -d "/srv/ralph/src/$1" ] || git clone "$2" "/srv/ralph/src/$1"; }
clone shop https://git.example.com/shop.git
