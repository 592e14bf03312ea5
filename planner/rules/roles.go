package rules

// role is the side of a pair a parameter or mention is on.
type role int

const (
	roleNone role = iota
	roleFrom
	roleTo
)

var (
	fromWords = set("from start origin sourc begin initi depart departur since low lower min minimum first pickup base old")
	toWords   = set("to end destin target final arriv arrival until high upper max maximum second last drop dropoff new return checkout finish")
)

// role tells whether a parameter is the beginning or the end of something.
func (p param) role() role {
	for _, s := range p.nameStems {
		switch {
		case fromWords[s]:
			return roleFrom
		case toWords[s]:
			return roleTo
		}
	}
	return roleNone
}

// role tells on which side of a pair ("from A to B", "between A and B") a mention stands.
func (m mention) role() role {
	switch m.prep {
	case "from", "since", "after", "between", "above", "over":
		return roleFrom
	case "to", "until", "till", "into", "before", "below", "under":
		return roleTo
	}
	return roleNone
}

func roleScore(q param, m mention) float64 {
	a, b := q.role(), m.role()
	switch {
	case a == roleNone || b == roleNone:
		return 0
	case a == b:
		return 1.5
	}
	return -1.5
}
