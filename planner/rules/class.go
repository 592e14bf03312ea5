package rules

import (
	"slices"
	"strings"
)

// class is what a string parameter is about, by its name, format and description.
type class int

const (
	classText class = iota // nothing special
	classQuery
	classDate
	classTime
	classEmail
	classURL
	classPath
	classID
	classPlace
	classCurrency
	classLanguage
	classExpression
)

// classOf reads the class of a parameter.
func (p param) classOf() class {
	switch p.format {
	case "date", "date-time":
		return classDate
	case "time":
		return classTime
	case "email", "idn-email":
		return classEmail
	case "uri", "url", "iri", "hostname", "ipv4", "ipv6":
		return classURL
	}
	last := ""
	if n := len(p.nameStems); n > 0 {
		last = p.nameStems[n-1]
	}
	has := func(stems ...string) bool {
		return slices.ContainsFunc(p.nameStems, func(s string) bool { return slices.Contains(stems, s) })
	}
	switch {
	case has("date", "datetim", "dai", "birthdai", "deadlin", "checkin", "checkout") && !has("type", "format"):
		return classDate
	case last == "time" || has("clock"):
		if p.mentions("date") || strings.Contains(strings.ToLower(p.description), "yyyy") {
			return classDate
		}
		return classTime
	case has("email"):
		return classEmail
	case has("url", "uri", "link", "websit", "domain", "host", "hostnam", "endpoint") || has("ip"):
		return classURL
	case has("path", "file", "filenam", "filepath", "directori", "folder"):
		return classPath
	case last == "id" || last == "uuid" || has("identifi", "sku", "isbn", "uuid"):
		return classID
	case has("locat", "citi", "place", "address", "area", "region", "destin", "origin", "where", "town", "countri", "state", "airport", "station", "timezon"):
		return classPlace
	case has("currenc") || p.onlyRole() && p.descStems["currenc"]:
		return classCurrency
	case has("languag", "lang", "local") || p.onlyRole() && p.descStems["languag"]:
		return classLanguage
	case has("express", "formula", "equat", "calcul", "math") || p.descStems["express"] && (p.descStems["mathemat"] || p.descStems["math"] || p.descStems["arithmet"]):
		return classExpression
	case has("queri", "keyword", "search", "topic", "question", "prompt", "term", "subject") || p.name == "q":
		return classQuery
	}
	return classText
}

// onlyRole reports whether a parameter's name says no more than on which side of a pair it is, so that its description has to
// say what it is: "from", "The currency to convert from".
func (p param) onlyRole() bool {
	return len(p.nameStems) == 1 && (fromWords[p.nameStems[0]] || toWords[p.nameStems[0]] || p.nameStems[0] == "sourc" || p.nameStems[0] == "target")
}

// mentions reports whether the parameter's name or description has the stem.
func (p param) mentions(stem string) bool {
	return slices.Contains(p.nameStems, stem) || p.descStems[stem]
}
