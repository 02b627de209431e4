package forge

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"reflect"
)

// Part is an answer or one thing of it. It is whole when it has what every such thing has: JSON of another form decodes
// into nothing but zeros, which must not be taken for "there is none".
type Part interface{ Whole() bool }

// List is an answer that is a list of parts.
type List[T Part] []T

// Whole reports that it is a list, maybe an empty one, of whole parts.
func (l List[T]) Whole() bool {
	for _, p := range l {
		if !p.Whole() {
			return false
		}
	}
	return l != nil
}

// Decoded says that the answers to ctx are JSON for out, a pointer. A null is none, and neither is what the types
// refuse or what decodes into a [Part] that is not whole; out is then left as it was.
func Decoded(ctx context.Context, out any) context.Context {
	return Into(ctx, func(body []byte) error { return Decode(body, out) })
}

// Decode is what [Decoded] does with one answer.
func Decode(body []byte, out any) error {
	if string(bytes.TrimSpace(body)) == "null" {
		return errors.New("it is null")
	}
	fresh := reflect.New(reflect.TypeOf(out).Elem()) // nothing of an earlier attempt may show through
	if err := json.Unmarshal(body, fresh.Interface()); err != nil {
		return err
	}
	for _, form := range []any{fresh.Interface(), fresh.Elem().Interface()} { // whichever has the method
		if p, ok := form.(Part); ok && !p.Whole() {
			return errors.New("something lacks its number, name or state")
		}
	}
	reflect.ValueOf(out).Elem().Set(fresh.Elem())
	return nil
}
