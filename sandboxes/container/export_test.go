package container

import "time"

// VolumePrefix returns the prefix of the names of a run's volumes.
func VolumePrefix(run string) string { return volumeName(run, "") }

// ContainerName returns the name of a container of a run.
func ContainerName(run, suffix string) string { return containerName(run, suffix) }

// RemoveFiles removes the run's files in the state folder.
func RemoveFiles(state, run string) error {
	return (&Provider{config: Config{StateDir: state}}).removeFiles(run)
}

// SetPatience sets the time limits: without a frame until the container is checked, for a call, and for the end of a
// command.
func (p *Provider) SetPatience(quiet, call, end time.Duration) {
	p.timeouts = timeouts{quiet, call, end}
}
