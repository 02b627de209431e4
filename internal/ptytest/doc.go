// Package ptytest opens pseudo terminals for tests. It supports only Linux.
package ptytest
