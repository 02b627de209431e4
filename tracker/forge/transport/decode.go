package transport

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"
)

// Expect makes the stack check each success answer to ctx: it must be JSON for a complete T. JSON of another form decodes into
// zero values, which must not be mistaken for "there is none". An answer that fails is treated like a truncated one.
func Expect[T any](ctx context.Context, complete func(*T) bool) context.Context {
	return Check(ctx, func(body []byte) error {
		_, err := Decode(body, complete)
		return err
	})
}

// ExpectList is [Expect] for a JSON list of complete Ts; with a nil complete any items will do. The list may be empty.
func ExpectList[T any](ctx context.Context, complete func(*T) bool) context.Context {
	return Expect(ctx, func(list *[]*T) bool { return Complete(*list, complete) })
}

// RawList is a JSON list of any items. They are decoded one by one, so that an invalid item does not hide the others.
type RawList []json.RawMessage

// Items returns pointers to the items.
func (l RawList) Items() []*json.RawMessage {
	items := make([]*json.RawMessage, len(l))
	for n := range l {
		items[n] = &l[n]
	}
	return items
}

// Complete reports whether a list is not nil and each item is complete.
func Complete[T any](list []*T, complete func(*T) bool) bool {
	return list != nil && (complete == nil || !slices.ContainsFunc(list, func(v *T) bool { return v == nil || !complete(v) }))
}

// Decode decodes one answer and returns an error if it is not complete.
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
