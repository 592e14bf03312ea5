package auth

// Scope is a part of the servers and tools that limits callers of a profile. It is immutable.
type Scope struct {
	name   string
	access *access
}

// NewScope returns a Scope with a unique name. It contains the named servers, or all if there are none, and their
// tools that the filter admits. The error names a malformed pattern.
func NewScope(name string, servers []string, tools Filter) (*Scope, error) {
	may, err := newAccess(servers, tools)
	return &Scope{name: name, access: may}, err
}

// Within returns the caller limited to a scope instead of its current one; nil means no limit.
func (c Caller) Within(s *Scope) Caller {
	c.scope = s
	return c
}

// ScopedID distinguishes the same caller in several scopes. Without a scope it is ID.
func (c Caller) ScopedID() string {
	if c.scope == nil {
		return c.ID
	}
	return c.ID + "@" + c.scope.name
}
