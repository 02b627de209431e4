package container

import "time"

// VolumePrefix begins the names of a run's volumes.
func VolumePrefix(run string) string { return volumeName(run, "") }

// SetQuietLimit sets how long no frame may come before the container is checked.
func (p *Provider) SetQuietLimit(d time.Duration) { p.quietLimit = d }
