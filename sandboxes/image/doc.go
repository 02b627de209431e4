// Package image builds and removes the images that container sandboxes run in, by the command line of an engine.
//
// The command line and package runner use it. The engine's output is passed on as it comes, and its exit status is in an
// [ExitError]. Everything is safe for use by several goroutines.
package image
