package transport

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"
)

// Expect makes the stack check each success answer to ctx: it must be JSON for a T that is complete. JSON of another
// form decodes into zeros, which must not be read as "there is none". An answer that fails is treated as a cut one.
func Expect[T any](ctx context.Context, complete func(*T) bool) context.Context {
	return Check(ctx, func(body []byte) error {
		_, err := Decode(body, complete)
		return err
	})
}

// ExpectList is [Expect] for a JSON list of complete Ts, or with nil of anything. It may be empty.
func ExpectList[T any](ctx context.Context, complete func(*T) bool) context.Context {
	return Expect(ctx, func(list *[]*T) bool { return Complete(*list, complete) })
}

// RawList is a JSON list of anything, whose items are decoded one by one so that a bad one does not hide the others.
type RawList []json.RawMessage

// Items are the items.
func (l RawList) Items() []*json.RawMessage {
	items := make([]*json.RawMessage, len(l))
	for n := range l {
		items[n] = &l[n]
	}
	return items
}

// Complete reports whether a list is there, maybe an empty one, and each of its things is complete.
func Complete[T any](list []*T, complete func(*T) bool) bool {
	return list != nil && (complete == nil || !slices.ContainsFunc(list, func(v *T) bool { return v == nil || !complete(v) }))
}

// Decode reads one answer that must be complete.
func Decode[T any](body []byte, complete func(*T) bool) (*T, error) {
	if string(bytes.TrimSpace(body)) == "null" {
		return nil, errors.New("it is null")
	}
	v := new(T)
	if err := json.Unmarshal(body, v); err != nil {
		return nil, err
	}
	if !complete(v) {
		return nil, errors.New("a number, name or state is missing")
	}
	return v, nil
}
