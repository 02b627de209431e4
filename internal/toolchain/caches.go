package toolchain

// Caches are folders below a home in which tools keep what they fetch and compile, by its content or version: what is there too
// much changes no result. Where a tool also keeps what a project has installed, its folder is not among them.
func Caches() []string {
	return []string{
		"go/pkg/mod", ".cache/go-build",
		".npm/_cacache", ".local/share/pnpm/store", ".cache/yarn", ".yarn/berry/cache", ".bun/install/cache", ".cache/deno",
		".cache/pip", ".cache/uv", ".cache/pdm", ".cache/pypoetry/artifacts", ".cache/pypoetry/cache", //nolint:misspell // a folder of poetry's
		".cargo/registry", ".cargo/git/db", ".gradle/wrapper/dists", ".gradle/caches/modules-2", ".cache/composer", ".nuget/packages",
	}
}
