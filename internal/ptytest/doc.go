// Package ptytest opens terminals for tests. Only Linux has them here.
package ptytest
