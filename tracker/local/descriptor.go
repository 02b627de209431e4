package local

import (
	"path/filepath"

	"github.com/ralph-pool/ralph/tracker"
)

// Descriptor describes the local tracker to a registry.
func Descriptor() tracker.Descriptor {
	return tracker.Descriptor{
		Name: Name, Title: "local", Summary: "files in " + DefaultDir,
		// No OptionAuthors: everybody who can write a file can write any author's name, so the filter would prove nothing.
		Options: []tracker.Option{tracker.OptionFolder, tracker.OptionAssignee, tracker.OptionMilestone},
		Open: func(s tracker.Settings) (tracker.Tracker, error) {
			c := Config{Dir: s.Folder, Assignee: s.Assignee, Milestone: s.Milestone, Log: s.Log}
			if s.StateDir != "" {
				c.LockDir = filepath.Join(s.StateDir, "locks")
			}
			return New(c)
		},
	}
}
