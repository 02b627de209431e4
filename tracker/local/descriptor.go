package local

import (
	"path/filepath"

	"github.com/ralph-pool/ralph/tracker"
)

// Descriptor describes the local tracker to a registry.
func Descriptor() tracker.Descriptor {
	return tracker.Descriptor{
		Name: Name, Title: "local", Summary: "files in " + DefaultDir,
		Options: []tracker.Option{tracker.OptionFolder, tracker.OptionAuthors, tracker.OptionAssignee, tracker.OptionMilestone},
		Open: func(s tracker.Settings) (tracker.Tracker, error) {
			c := Config{Dir: s.Folder, Authors: s.Authors, Assignee: s.Assignee, Milestone: s.Milestone, Log: s.Log}
			if s.StateDir != "" {
				c.LockDir = filepath.Join(s.StateDir, "locks")
			}
			t, err := New(c)
			if err != nil {
				return nil, err
			}
			return t, nil
		},
	}
}
