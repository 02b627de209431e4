// Package image builds and removes the images that container sandboxes run in, by the command line of an engine.
//
// It is for "ralph image build" and "ralph image remove": what the engine prints is passed on as it comes, and its exit
// status is the caller's to return. Everything is safe for use by several goroutines.
package image
