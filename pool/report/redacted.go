package report

import (
	"reflect"
	"strings"

	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/redact"
	"github.com/ralph-pool/ralph/tracker"
)

// Redacted returns a copy of the record without secrets in its texts for people.
func Redacted(r journal.Record, s *redact.Secrets) journal.Record {
	r.Published, r.Verdict.Reason = s.Clean(r.Published), redacted(r.Verdict.Reason, s)
	r.Unreported, r.Unlabelled = s.Clean(r.Unreported), s.Clean(r.Unlabelled)
	r.Warnings, r.Facts, r.Changed = redacted(r.Warnings, s), redacted(r.Facts, s), redacted(r.Changed, s)
	r.Request.Unmerged, r.Doing = s.Clean(r.Request.Unmerged), s.Clean(r.Doing)
	return r
}

// RedactedEvent returns a copy of the event without secrets in its texts, and with its title on one clean line.
func RedactedEvent(e journal.Event, s *redact.Secrets) journal.Event {
	title, _ := tracker.Clean(e.Title)
	e.Title = strings.Join(strings.Fields(title), " ") // many readers show an event on one line
	e.Text, e.Title, e.Session = s.Clean(e.Text), s.Clean(e.Title), s.Clean(e.Session)
	e.Reason, e.Skip, e.Check, e.Subject = redacted(e.Reason, s), redacted(e.Skip, s), redacted(e.Check, s), redacted(e.Subject, s)
	return e
}

// redacted returns a copy of the value without secrets in its strings. It skips strings of a named type, which are ralph's
// own words.
func redacted[T any](v T, s *redact.Secrets) T {
	redactIn(reflect.ValueOf(&v).Elem(), s)
	return v
}

func redactIn(v reflect.Value, s *redact.Secrets) {
	switch v.Kind() {
	case reflect.String:
		if v.Type() == reflect.TypeFor[string]() {
			v.SetString(s.Clean(v.String()))
		}
	case reflect.Pointer:
		if !v.IsNil() {
			clone := reflect.New(v.Type().Elem())
			clone.Elem().Set(v.Elem())
			redactIn(clone.Elem(), s)
			v.Set(clone)
		}
	case reflect.Slice:
		if v.IsNil() {
			return
		}
		clone := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		reflect.Copy(clone, v)
		for i := range clone.Len() {
			redactIn(clone.Index(i), s)
		}
		v.Set(clone)
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Field(i); f.CanSet() {
				redactIn(f, s)
			}
		}
	}
}
