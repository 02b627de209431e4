package native

// For tests outside the package.
var (
	GroupPrefix = groupPrefix
)
