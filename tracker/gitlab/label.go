package gitlab

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	gl "github.com/xanzy/go-gitlab"

	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/tracker/forge"
)

const labelColor = "#6699cc"

// checkLabel refuses what GitLab has no way to say.
func checkLabel(name string) error {
	name = strings.TrimSpace(name)
	if name == "" {
		return errors.New("set label: it has no name")
	}
	if strings.Contains(name, ",") {
		return fmt.Errorf("set label %q: GitLab's labels have no commas; choose another name in the configuration", name)
	}
	return nil
}

// spelling is how the project, or a group above it, writes a label; the name itself when there is none yet. GitLab tells
// labels apart by case, and would make a second one.
func (t *Tracker) spelling(ctx context.Context, name string) (string, error) {
	if err := checkLabel(name); err != nil {
		return "", err
	}
	name = strings.TrimSpace(name)
	t.mu.Lock()
	known, ok := t.labels[strings.ToLower(name)]
	t.mu.Unlock()
	if ok {
		return known, nil
	}
	found, err := t.existing(ctx, name)
	if err != nil || found == "" {
		return name, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.labels[strings.ToLower(name)] = found
	return found, nil
}

// existing finds a label, whatever its case, but rather in the given one; empty when there is none.
func (t *Tracker) existing(ctx context.Context, name string) (string, error) {
	all, err := pages[label](ctx, t, t.project("/labels"), url.Values{"search": {name}})
	if err != nil {
		return "", err
	}
	found := ""
	for _, l := range all {
		if l.Name == name || (found == "" && tracker.SameLabel(l.Name, name)) {
			found = l.Name
		}
	}
	return found, nil
}

func (t *Tracker) spellings(ctx context.Context, names []string) ([]string, error) {
	var out []string
	for _, n := range names {
		spelt, err := t.spelling(ctx, n)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(out, spelt) {
			out = append(out, spelt)
		}
	}
	return out, nil
}

// CreateLabels makes the labels that do not exist.
func (t *Tracker) CreateLabels(ctx context.Context, names []string) error {
	for _, name := range names {
		if err := checkLabel(name); err != nil {
			return err
		}
		name = strings.TrimSpace(name)
		found, err := t.existing(ctx, name)
		if err != nil {
			return err
		}
		if found != "" {
			continue
		}
		body := gl.CreateLabelOptions{Name: &name, Color: gl.Ptr(labelColor), Description: gl.Ptr("used by ralph")}
		_, err = one[label](ctx, t, http.MethodPost, t.project("/labels"), body)
		if forge.Status(err) == http.StatusConflict { // made by somebody else meanwhile
			err = nil
		}
		if err != nil {
			return fmt.Errorf("create label %q: %w", name, err)
		}
	}
	return nil
}
