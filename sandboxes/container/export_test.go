package container

import "time"

// VolumePrefix begins the names of a run's volumes.
func VolumePrefix(run string) string { return volumeName(run, "") }

// ContainerName is the name of a container of a run.
func ContainerName(run, suffix string) string { return containerName(run, suffix) }

// RemoveFiles removes what the run has in the state folder.
func RemoveFiles(state, run string) error {
	return (&Provider{config: Config{StateDir: state}}).removeFiles(run)
}

// SetPatience sets how long no frame may come before the container is checked, a call may take, and the end of a command.
func (p *Provider) SetPatience(quiet, call, end time.Duration) {
	p.patience = patience{quiet, call, end}
}
