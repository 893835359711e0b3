module waypost-bench/peers

go 1.24

require (
	github.com/SherClockHolmes/webpush-go v1.4.0
	github.com/sideshow/apns2 v0.25.0
	golang.org/x/net v0.25.0
)

require (
	github.com/golang-jwt/jwt/v4 v4.4.1 // indirect
	github.com/golang-jwt/jwt/v5 v5.2.1 // indirect
	golang.org/x/crypto v0.31.0 // indirect
	golang.org/x/text v0.21.0 // indirect
)
