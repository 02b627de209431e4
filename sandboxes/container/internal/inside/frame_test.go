package inside

import (
	"bytes"
	"slices"
	"strings"
	"testing"
)

// heard is one received frame.
type heard struct {
	kind    byte
	payload string
}

func TestFramesSurviveAnySplit(t *testing.T) {
	t.Parallel()
	var wire bytes.Buffer
	w := &FrameWriter{W: &wire}
	want := []heard{{'a', ""}, {'o', "some\x00bytes\xff"}, {'r', strings.Repeat("x", 200_000)}, {'x', "{}"}}
	for _, f := range want {
		if err := w.Send(f.kind, []byte(f.payload)); err != nil {
			t.Fatal(err)
		}
	}
	for _, step := range []int{1, 2, 3, 5, 7, 4096, 1 << 20} {
		var got []heard
		r := &FrameReader{On: func(kind byte, p []byte) error {
			got = append(got, heard{kind, string(p)})
			return nil
		}}
		for part := range slices.Chunk(wire.Bytes(), step) {
			if n, err := r.Write(part); n != len(part) || err != nil {
				t.Fatal(n, err)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("in steps of %d: %d frames", step, len(got))
		}
	}
}

// FuzzFrames: no input makes the reader panic or buffer more than it was given.
func FuzzFrames(f *testing.F) {
	f.Add([]byte("a\x00\x00\x00\x00o\x00\x00\x00\x01z"), 3)
	f.Add([]byte("o\xff\xff\xff\xff"), 1)
	f.Fuzz(func(t *testing.T, wire []byte, step int) {
		total := 0
		r := &FrameReader{On: func(_ byte, p []byte) error { total += len(p) + headSize; return nil }}
		for part := range slices.Chunk(wire, min(max(step, 1), 1<<20)) {
			if _, err := r.Write(part); err != nil {
				break
			}
		}
		if total > len(wire) {
			t.Errorf("%d bytes heard of %d", total, len(wire))
		}
	})
}
