package suite

import "bytes"

// IsBinary reports whether git takes a content for data, whose changes it does not show.
func IsBinary(content []byte) bool { return bytes.IndexByte(content[:min(len(content), 8000)], 0) >= 0 }
