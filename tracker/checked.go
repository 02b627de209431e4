package tracker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
)

// The maximum sizes of an issue, in bytes. Longer ones would take minutes to scan for secrets, and fit no prompt.
const (
	MaxTitle = 4 << 10
	MaxText  = 8 << 20 // body plus trusted comments; untrusted comments do not count, since anybody may write them and no prompt contains them
)

// Check returns an error if the issue violates the contract of [Issue].
func (i Issue) Check() error {
	text := len(i.Body)
	for _, c := range i.Comments {
		if c.Trusted {
			text += len(c.Body)
		}
	}
	switch {
	case i.Key != Key(i.Key):
		return fmt.Errorf("its key %.100q is not safe; make keys with tracker.Key", i.Key)
	case i.ID == "" || i.URL == "":
		return errors.New("the tracker gives it no ID or no URL")
	case len(i.Title) > MaxTitle:
		return fmt.Errorf("its title has %d bytes; at most %d are allowed", len(i.Title), MaxTitle)
	case text > MaxText:
		return fmt.Errorf("its text has %d bytes; at most %d are allowed", text, MaxText)
	}
	return nil
}

// Checked decorates a tracker with checks of its contract. List reports an invalid issue, and a second issue with the same key,
// as a Problem; Get returns an error. Checked also fills in a missing Where or Err of a Problem.
func Checked(t Tracker) Tracker {
	if _, is := t.(checkedTracker); is || t == nil {
		return t
	}
	return checkedTracker{t}
}

type checkedTracker struct{ Tracker }

func (c checkedTracker) Unwrap() Tracker { return c.Tracker }

func (c checkedTracker) List(ctx context.Context, q Query) (Listing, error) {
	l, err := c.Tracker.List(ctx, q)
	if err != nil {
		return l, err
	}
	l.Problems = slices.Clone(l.Problems)
	for n, p := range l.Problems {
		l.Problems[n].Where, l.Problems[n].Err = cmp.Or(p.Where, c.Name()), cmp.Or(p.Err, errNoCause)
	}
	byKey := make(map[string]Issue, len(l.Issues))
	valid := make([]Issue, 0, len(l.Issues))
	for _, i := range l.Issues {
		err := i.Check()
		if other, twice := byKey[i.Key]; twice && err == nil {
			err = fmt.Errorf("it has the key %s of %.200q; it is not worked", i.Key, other.URL)
		}
		if err != nil {
			l.Problems = append(l.Problems, Problem{Where: fmt.Sprintf("%.200q", cmp.Or(i.URL, i.ID, i.Key)), Err: err})
			continue
		}
		byKey[i.Key], valid = i, append(valid, i)
	}
	l.Issues = valid
	return l, nil
}

func (c checkedTracker) Get(ctx context.Context, key string) (Issue, error) {
	i, err := c.Tracker.Get(ctx, key)
	if err != nil {
		return i, err
	}
	if i.Key != key {
		return Issue{}, fmt.Errorf("asked for issue %s, the tracker gave %.100q", key, i.Key)
	}
	return i, i.Check()
}
