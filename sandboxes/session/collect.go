package session

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
)

// Artefacts are what a session leaves to its caller. Whatever ran inside may have made up all of it but Run, Sandbox,
// Base, Notices and Metadata.
type Artefacts struct {
	Run      string            `json:"run"`
	Sandbox  string            `json:"sandbox"` // the provider's name
	Base     string            `json:"base,omitempty"`
	Diff     Diff              `json:"diff"`
	Logs     []Result          `json:"logs"` // the last commands, oldest first
	Files    []File            `json:"files"`
	Missing  []string          `json:"missing,omitempty"` // Outputs that no file fits
	Notices  []string          `json:"notices,omitempty"` // what limits have cost, each in one line
	Left     string            `json:"left,omitempty"`    // which files have not come back from a sandbox that copies them
	Metadata map[string]string `json:"metadata,omitempty"`
}

// File is one output file.
type File struct {
	Path    string `json:"path"`
	Content []byte `json:"content"`
	// Skipped says why there is no content; empty when there is.
	Skipped string `json:"skipped,omitempty"`
}

// Collect gathers the artefacts as they are now. It changes nothing, and may be called several times.
func (s *Session) Collect(ctx context.Context) (Artefacts, error) {
	a := Artefacts{
		Run: s.Name(), Sandbox: s.config.Provider.Name(), Base: s.base, Metadata: maps.Clone(s.config.Metadata),
	}
	var err error
	if a.Diff, err = s.diff(ctx); err != nil {
		return Artefacts{}, fmt.Errorf("collect: %w", err)
	}
	if a.Files, a.Missing, err = s.outputs(); err != nil {
		return Artefacts{}, fmt.Errorf("collect: %w", err)
	}
	a.Notices, a.Left = s.Notices(), s.Left()
	s.mu.Lock()
	a.Logs = slices.Clone(s.logs)
	s.mu.Unlock()
	return a, nil
}

// outputs reads the named files, as far as the limits go, and tells which names nothing fits.
func (s *Session) outputs() (files []File, missing []string, err error) {
	patterns := s.config.Outputs
	if len(patterns) == 0 {
		return nil, nil, nil
	}
	found, err := s.Workspace.list(patterns)
	if err != nil {
		return nil, nil, err
	}
	fit := make([]bool, len(patterns))
	room := s.config.MaxFiles
	for _, m := range found {
		for i, p := range patterns {
			fit[i] = fit[i] || i >= m.pattern && fits(p, m.path)
		}
		f := File{Path: m.path}
		f.Content, err = s.Workspace.get(m.path, min(room, s.config.MaxFile))
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue // removed meanwhile
		case err != nil:
			f.Skipped = printable(err.Error())
		}
		room -= int64(len(f.Content))
		files = append(files, f)
	}
	for i, p := range patterns {
		if !fit[i] {
			missing = append(missing, p)
		}
	}
	return files, missing, nil
}
