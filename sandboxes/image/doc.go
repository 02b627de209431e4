// Package image builds and removes the images of container sandboxes, with the command line of an engine.
//
// The command line and package runner use it. It passes the engine's output on as it comes, and returns a non-zero exit
// status as an [ExitError]. Everything is safe for concurrent use.
package image
