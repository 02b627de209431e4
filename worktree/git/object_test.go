package git

import (
	"bytes"
	"compress/zlib"
	"io"
	"testing"
)

// A stored object is a zlib stream of the same bytes, also with several blocks.
func TestStored(t *testing.T) {
	t.Parallel()
	for _, size := range []int{0, 1, 400, 0xffff, 0x10000, 200_000} {
		data := bytes.Repeat([]byte("0123456"), size/7+1)[:size]
		r, err := zlib.NewReader(bytes.NewReader(uncompressedZlib(data)))
		if err != nil {
			t.Fatal(size, err)
		}
		got, err := io.ReadAll(r)
		if err != nil || !bytes.Equal(got, data) {
			t.Fatal(size, len(got), err)
		}
	}
}
