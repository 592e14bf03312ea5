package auth

// Scope is a part of the servers and tools, which limits whoever comes by a way that has one. It never changes.
type Scope struct {
	name   string
	access *access
}

// NewScope returns a Scope with a name of its own. It has the named servers, all if there are none, and their tools
// that the filter lets through. The error names a malformed pattern.
func NewScope(name string, servers []string, tools Filter) (*Scope, error) {
	may, err := newAccess(servers, tools)
	return &Scope{name: name, access: may}, err
}

// Within returns the caller limited to a scope; nil does not limit it. It replaces the scope that there was.
func (c Caller) Within(s *Scope) Caller {
	c.scope = s
	return c
}

// ScopedID tells apart the same caller in several scopes. Without a scope it is ID.
func (c Caller) ScopedID() string {
	if c.scope == nil {
		return c.ID
	}
	return c.ID + "@" + c.scope.name
}
