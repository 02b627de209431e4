package session

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"

	"github.com/ralph-pool/ralph/internal/neutral"
	"github.com/ralph-pool/ralph/sandboxes"
)

// Artefacts are the results of a session. Commands inside may have forged everything except Run, Name, Sandbox, Weaker,
// Base, Notices and Metadata.
type Artefacts struct {
	Run      string             `json:"run"`
	Name     string             `json:"name,omitempty"` // the sandbox's own name, if it has one
	Sandbox  string             `json:"sandbox"`        // the provider's name
	Weaker   string             `json:"weaker,omitempty"`
	Base     string             `json:"base,omitempty"`
	Branch   string             `json:"branch,omitempty"` // the branch that Prepare switched to
	Diff     Diff               `json:"diff"`
	Logs     []Result           `json:"logs"` // the last commands, oldest first
	Files    []File             `json:"files"`
	Missing  []string           `json:"missing,omitempty"` // Outputs patterns without a file
	Notices  []sandboxes.Notice `json:"notices,omitempty"` // see Session.Notices
	Metadata map[string]string  `json:"metadata,omitempty"`
}

// File is one output file.
type File struct {
	Path    string `json:"path"`
	Content []byte `json:"content"`
	// Skipped is the reason why Content is missing; otherwise empty.
	Skipped string `json:"skipped,omitempty"`
}

// Collect gathers the current artefacts. It may be called several times. If the provider copies files, it fetches the
// output files; otherwise it changes nothing.
func (s *Session) Collect(ctx context.Context) (Artefacts, error) {
	c := s.config
	a := Artefacts{
		Run: s.Name(), Name: c.Spec.Name, Sandbox: c.Provider.Name(), Weaker: c.Provider.Capabilities().Weaker,
		Base: s.base, Branch: c.Branch, Metadata: maps.Clone(c.Metadata),
	}
	var err error
	if a.Diff, err = s.diff(ctx); err != nil {
		return Artefacts{}, fmt.Errorf("collect: %w", err)
	}
	if a.Files, a.Missing, err = s.outputs(ctx); err != nil {
		return Artefacts{}, fmt.Errorf("collect: %w", err)
	}
	a.Notices = s.Notices()
	s.mu.Lock()
	a.Logs = slices.Clone(s.logs)
	s.mu.Unlock()
	return a, nil
}

// outputs reads the output files within the limits, and returns the patterns without a file.
func (s *Session) outputs(ctx context.Context) (files []File, missing []string, err error) {
	patterns := s.config.Outputs
	if len(patterns) == 0 {
		return nil, nil, nil
	}
	if err := s.fetchOutputs(ctx); err != nil {
		return nil, nil, err
	}
	found, err := s.Workspace.list(patterns)
	if err != nil {
		return nil, nil, err
	}
	room := s.config.MaxFiles
	for _, name := range found {
		f := File{Path: name}
		f.Content, err = s.Workspace.get(name, min(room, s.config.MaxFile))
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue // removed meanwhile
		case err != nil:
			f.Skipped = neutral.Line(err.Error())
		}
		room -= int64(len(f.Content))
		files = append(files, f)
	}
	for _, p := range patterns {
		if !slices.ContainsFunc(found, func(name string) bool { return matchesAny([]string{p}, name) }) {
			missing = append(missing, p)
		}
	}
	return files, missing, nil
}
