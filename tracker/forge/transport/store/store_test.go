package store

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
)

// randomBytes returns n bytes that do not compress.
func randomBytes(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails
	return b
}

func TestStoreIsBounded(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, err := Open(dir, 64<<10)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for n := range 200 {
		if err := s.Put(fmt.Sprintf("%064x", n), Entry{ETag: "x", Body: randomBytes(1500)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Put("large", Entry{ETag: "x", Body: randomBytes(32 << 10)}); err != nil {
		t.Fatal(err)
	}
	if _, ok := s.Get("large"); ok {
		t.Error("one entry takes half of the room")
	}
	total := int64(0)
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		info, err := f.Info()
		if err != nil {
			t.Fatal(err)
		}
		total += info.Size()
	}
	if total > 64<<10+4<<10 || len(files) < 10 {
		t.Errorf("%d files of %d bytes", len(files), total)
	}
	if _, ok := s.Get(fmt.Sprintf("%064x", 199)); !ok {
		t.Error("the newest is gone")
	}
}

func TestDamageIsDetected(t *testing.T) {
	t.Parallel()
	good := Entry{ETag: `"x"`, ContentType: "application/json", Body: randomBytes(100)}
	b, err := encodeEntry(good)
	if err != nil {
		t.Fatal(err)
	}
	for n := range b { // a damaged header field that nobody reads is harmless
		bad := bytes.Clone(b)
		bad[n] ^= 1
		if e, err := decodeEntry(bytes.NewReader(bad), 1<<20); err == nil && !reflect.DeepEqual(e, good) {
			t.Fatalf("byte %d damaged: still read", n)
		}
	}
}

func FuzzDecodeEntry(f *testing.F) {
	good, err := encodeEntry(Entry{ETag: `"x"`, ContentType: "application/json", Body: []byte("{}")})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add([]byte(strings.Repeat("\xff", 64)))
	f.Add(good[:len(good)-1])
	f.Fuzz(func(t *testing.T, b []byte) {
		e, err := decodeEntry(bytes.NewReader(b), 1<<20)
		if err != nil {
			return
		}
		again, err := encodeEntry(e)
		if err != nil {
			t.Fatal(err)
		}
		if other, err := decodeEntry(bytes.NewReader(again), 1<<20); err != nil || !bytes.Equal(other.Body, e.Body) || other.ETag != e.ETag {
			t.Fatalf("%q does not survive: %v", b, err)
		}
	})
}
