package leak

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"encoding/binary"
	"io"
)

const (
	maxInflated = 1 << 20 // bytes of one stream; what comes after them is not looked at
	// An attempt costs this much of the budget even if nothing comes out: where two bytes may begin a stream, many do not.
	attempt = 2 << 10
)

// inflater keeps the readers, of which each has a window of 32 KiB.
type inflater struct {
	gzip *gzip.Reader
	zlib io.ReadCloser
	raw  io.ReadCloser
	out  [depth + 1][]byte
}

// packed looks for gzip, zlib and zip streams.
func (d *decoder) packed(text []byte, more int) bool {
	for i := 0; i+4 < len(text); {
		next := bytes.IndexAny(text[i:], "\x1fxP")
		if next < 0 {
			return false
		}
		i += next
		if stream := d.flat.open(text[i:]); stream != nil && d.left >= attempt {
			d.left -= attempt
			out := d.flat.read(stream, min(maxInflated, d.left), more)
			if len(out) >= Shortest && d.inside(out, more) {
				return true
			}
		}
		i++
	}
	return false
}

// open starts to read the stream that the data begins with; nil when it begins with none.
func (f *inflater) open(data []byte) io.Reader {
	switch {
	case bytes.HasPrefix(data, []byte("\x1f\x8b\x08")):
		if f.gzip == nil {
			f.gzip = new(gzip.Reader)
		}
		if f.gzip.Reset(bytes.NewReader(data)) != nil {
			return nil
		}
		f.gzip.Multistream(false)
		return f.gzip
	case len(data) > 8 && data[0] == 'x' && (int(data[0])<<8|int(data[1]))%31 == 0 && data[1]&0x20 == 0:
		in := bytes.NewReader(data)
		if f.zlib == nil {
			f.zlib, _ = zlib.NewReader(in) // its header has been looked at
			return f.zlib
		}
		if f.zlib.(zlib.Resetter).Reset(in, nil) != nil { //nolint:forcetypeassert // by its documentation
			return nil
		}
		return f.zlib
	case bytes.HasPrefix(data, []byte("PK\x03\x04")) && len(data) > 30 && data[8] == 8 && data[9] == 0:
		head := 30 + int(binary.LittleEndian.Uint16(data[26:])) + int(binary.LittleEndian.Uint16(data[28:]))
		if head >= len(data) {
			return nil
		}
		in := bytes.NewReader(data[head:])
		if f.raw == nil {
			f.raw = flate.NewReader(in)
			return f.raw
		}
		_ = f.raw.(flate.Resetter).Reset(in, nil) //nolint:forcetypeassert // by its documentation; it never fails
		return f.raw
	}
	return nil
}

// read returns what comes out, up to a limit and up to the first flaw.
func (f *inflater) read(stream io.Reader, limit, more int) []byte {
	out := f.out[more][:0]
	for len(out) < limit {
		if len(out) == cap(out) {
			out = append(out, 0)[:len(out)]
		}
		n, err := stream.Read(out[len(out):min(cap(out), limit)])
		out = out[:len(out)+n]
		if err != nil {
			break
		}
	}
	f.out[more] = out
	return out
}
