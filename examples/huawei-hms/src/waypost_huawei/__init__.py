"""The channel ``huawei`` of Waypost: devices with Huawei Push Kit."""
